export function errorsPage(
  errors: Readonly<Record<string, { readonly title: string; readonly cause: string; readonly next: string }>>,
): string;
