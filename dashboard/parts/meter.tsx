/** How much of something is left, or done: a bar with its numbers. */
export function Meter({
  value,
  of,
  style = 'active',
  words = `${value}/${of}`,
}: {
  readonly value: number;
  readonly of: number;
  readonly style?: string;
  readonly words?: string;
}) {
  const share = of <= 0 ? 0 : Math.max(0, Math.min(1, value / of));
  return (
    <span class="meter">
      <svg width="54" height="10" viewBox="0 0 54 10" aria-hidden="true">
        <rect class={`bar ${style} solid`} width={share * 54} height="10" />
      </svg>
      {words}
    </span>
  );
}
