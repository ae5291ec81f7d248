/** Why somebody does something, for the history. */
export function NoteField({
  label,
  note,
  onNote,
}: {
  readonly label: string;
  readonly note: string;
  readonly onNote: (note: string) => void;
}) {
  return (
    <label class="field">
      {label}
      <input
        type="text"
        value={note}
        maxLength={1_000}
        autocomplete="off"
        onInput={(event) => onNote(event.currentTarget.value)}
      />
    </label>
  );
}
