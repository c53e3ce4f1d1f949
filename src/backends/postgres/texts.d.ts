/** What `scripts/texts.mjs` makes of the `.sql` files of this folder: a module of their texts by path, such as `statement/job_add.sql`. */
export declare const TEXTS: Readonly<Record<string, string>>
