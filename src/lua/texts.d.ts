/** What `scripts/texts.mjs` makes of the `.lua` files of this folder: a module of their texts by path, such as `script/job_add.lua`. */
export declare const TEXTS: Readonly<Record<string, string>>
