// The handler module of no-op jobs; bare piscina calls it as well.
export default async function noop() {}
