// What both databases of the shop have in common: the job that an order brings with it, and why there may be no order.
import { defineJob } from 'holdfast'

/** Input: `{ customer, order, item, count }`. */
export const confirmation = defineJob('order.confirmation', { queue: 'mail' })

export class OutOfStock extends Error {}
