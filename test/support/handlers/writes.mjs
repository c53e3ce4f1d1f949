// Writes lines to both streams, and waits until they were taken away.
const taken = (stream) => new Promise((resolve) => stream.write('\n', resolve))

export default async ({ lines }) => {
  for (let line = 0; line < lines; line += 1) {
    console.log(`out ${line}`)
    console.error(`err ${line}`)
  }
  await Promise.all([taken(process.stdout), taken(process.stderr)])
}
