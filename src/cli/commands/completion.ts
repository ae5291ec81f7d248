import { Argument, type Command } from 'commander';
import { act } from '../action.ts';

/** Each asks `holdfast __complete` for the words that fit. Without any, the shell completes names of files. */
const SCRIPTS = {
  bash: `_holdfast() {
  local IFS=$'\\n'
  COMPREPLY=($(holdfast __complete bash "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
  [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == *: ]] && compopt -o nospace
}
complete -o default -F _holdfast holdfast
`,
  zsh: `_holdfast() {
  local -a found
  found=("\${(@f)$(holdfast __complete zsh "$LBUFFER" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -U -S '' -Q -- $found; else _files; fi
}
compdef _holdfast holdfast
`,
  fish: `complete -c holdfast -a '(holdfast __complete fish (commandline -cp) 2>/dev/null)'
`,
};

export function declare(command: Command): void {
  command.addArgument(new Argument('<shell>').choices(Object.keys(SCRIPTS))).addHelpText(
    'after',
    `
bash: echo 'source <(holdfast completion bash)' >> ~/.bashrc
zsh:  echo 'source <(holdfast completion zsh)' >> ~/.zshrc
fish: holdfast completion fish > ~/.config/fish/completions/holdfast.fish
It knows the commands and flags, and of the store: IDs, queues, sources, types, schedules, workers and redrives.`,
  );
  act(command, async ({ terminal }, [shell]) => terminal.out.raw(SCRIPTS[shell as keyof typeof SCRIPTS]));
}
