export async function setup() {
  throw new Error('no database here')
}
export default () => 1
