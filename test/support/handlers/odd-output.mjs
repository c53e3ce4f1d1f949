// Gives outputs that nothing keeps, by name; inline as in a thread or process.
const outputs = {
  detached: () => {
    const bytes = new Uint8Array(8)
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    return { bytes }
  },
  map: () => ({ list: [1, new Map()] }),
  function: () => ({ f: () => 1 }),
  sparse: () => new Array(2 ** 32 - 1),
  fine: () => 'fine',
}

/** @param {string} name */
export default (name) => outputs[name]()
