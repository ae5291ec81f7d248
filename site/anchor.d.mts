export declare function anchorOf(heading: string): string;
