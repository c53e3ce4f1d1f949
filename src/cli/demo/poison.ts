/** The handler of `demo.poison`: ends its own thread, as a crash in native code would. The process and its other jobs live on. */
export default function poison(): never {
  process.exit(13)
}
