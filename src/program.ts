/** The path of the script that this process runs. It tells people which program takes the tasks of a type. */
export const PROGRAM: string | undefined = process.argv[1];
