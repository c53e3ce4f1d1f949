// The built product. Files below bench/ belong to the package of the peers, so they cannot import `holdfast` by its name.
export * from '../dist/src/index.js'
