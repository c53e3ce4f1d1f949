exports.__esModule = true
exports.setup = () => 'made by setup'
exports.default = (_input, ctx) => ctx.context
