/** What `scripts/build.mjs` makes of `package.json`, which a bundle does not bring along. */
export declare const VERSION: string
