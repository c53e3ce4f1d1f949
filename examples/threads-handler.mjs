// The handler module of threads.mjs: its default export runs in a thread of its own.
export default function run(input) {
  if (input.exit) process.exit(1)
  while (input.loop) {
    // Nothing but the end of its thread stops this.
  }
  const isComposite = new Uint8Array(input.below)
  let count = 0
  for (let n = 2; n < input.below; n += 1) {
    if (isComposite[n] === 1) continue
    count += 1
    for (let multiple = n * n; multiple < input.below; multiple += n) isComposite[multiple] = 1
  }
  return count
}
