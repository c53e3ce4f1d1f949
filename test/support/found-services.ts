/** What `scripts/find-services.mjs` loads: it decides while it is loaded, since what loads it cannot load more afterwards. */
import { findServices } from './services.ts'

export const services = await findServices()
