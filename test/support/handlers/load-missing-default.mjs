export const handler = () => 1
