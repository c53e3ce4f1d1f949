/** The boards of the workers of one store, as they are told to its thread, and told again to the one that replaces it. */
import type { LeaseKeeping } from './backend.ts'
import type { LeaseTerms } from './lease-policy.ts'
import type { BoardMessage, ToKeeper } from './lease-thread-messages.ts'

export interface BoardsOptions {
  /** Goes to the thread that runs now, if one does. */
  readonly post: (message: Exclude<ToKeeper, { kind: 'close' }>) => void
  readonly isReady: () => boolean
}

export class LeaseBoards {
  private readonly options: BoardsOptions
  private readonly boards = new Map<number, { readonly terms: LeaseTerms; readonly pages: SharedArrayBuffer[] }>()
  private lastId = 0

  constructor(options: BoardsOptions) {
    this.options = options
  }

  get size(): number {
    return this.boards.size
  }

  /** All that a new thread has to know. */
  list(): readonly BoardMessage[] {
    return [...this.boards].map(([id, { terms, pages }]) => ({ kind: 'board', id, terms, pages: [...pages] }))
  }

  open(terms: LeaseTerms): LeaseKeeping {
    const { post, isReady } = this.options
    this.lastId += 1
    const id = this.lastId
    const pages: SharedArrayBuffer[] = []
    this.boards.set(id, { terms, pages })
    post({ kind: 'board', id, terms, pages: [] })
    return {
      get isReady() {
        return isReady()
      },
      addPage: (memory) => {
        pages.push(memory)
        post({ kind: 'page', id, memory })
      },
      stop: () => {
        if (this.boards.delete(id)) post({ kind: 'end', id })
      },
    }
  }
}
