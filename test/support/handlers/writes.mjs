// Writes lines to both streams, and lets the loop take them away.
export default async ({ lines }) => {
  for (let line = 0; line < lines; line += 1) {
    console.log(`out ${line}`)
    console.error(`err ${line}`)
  }
  await new Promise(setImmediate)
}
