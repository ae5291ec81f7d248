/** Why a text does not name a store, and what would. It never contains the text, which may contain a password. */
export interface Objection {
  readonly what: string;
  readonly instead: string;
}

const SERVER = /^postgres(?:ql)?:/i;

/** Whether a text is meant to name a store on a server, as opposed to a file. */
export function namesServer(text: string): boolean {
  return SERVER.test(text);
}

/** What is wrong with the name of a store; undefined where nothing is. A name is a path, or a URL of a file or of PostgreSQL. */
export function objectionTo(text: string): Objection | undefined {
  if (text === '') return { what: 'is empty', instead: 'it is the path of a file, such as ./holdfast.db' };
  if (text === ':memory:') {
    return { what: ':memory: would be forgotten when this command ends', instead: 'name a file instead' };
  }
  if (hasVariable(text) || FOR_A_SHELL.test(text)) return NO_VARIABLES;
  if (namesServer(text)) return isServerUrl(text) ? undefined : NO_SERVER_URL;
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1];
  if (scheme === undefined || scheme.toLowerCase() === 'file') return undefined;
  return {
    what: `cannot be ${scheme}://…: a store is a file, or a database of PostgreSQL`,
    instead: 'a path, file:///path/to/holdfast.db, or postgres://user@host/database',
  };
}

/** Whether a text has a variable such as `${DATABASE_URL}` in it. */
export function hasVariable(text: string): boolean {
  return /\$\{\w+[^}]*\}/.test(text);
}

/** What a shell would replace at the beginning of a path: `$HOME/tasks.db`, `~/tasks.db`. */
const FOR_A_SHELL = /^(?:\$\w+|~)(?:\/|$)/;

const NO_VARIABLES: Objection = {
  what: 'has a variable or ~ in it, and only a shell replaces these',
  instead: 'write the path out, or set HOLDFAST_STORE in a shell, such as HOLDFAST_STORE="$DATABASE_URL"',
};

const NO_SERVER_URL: Objection = {
  what: 'is no URL of PostgreSQL',
  instead: 'as in postgres://user@host/database; special characters of a user or password as in %40 for @',
};

/** An @ after the host: a password that was not encoded for a URL. */
function isServerUrl(text: string): boolean {
  if (!/^[a-z]+:\/\//i.test(text) || !URL.canParse(text)) return false;
  const { pathname, search, hash } = new URL(text);
  return !`${pathname}${search}${hash}`.includes('@');
}
