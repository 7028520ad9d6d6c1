// Package catalog tells the other parts which functions exist.
//
// Reader is what they see, wherever Functions come from. Catalog is a Reader
// over memory, which a source of Functions fills: package file does so from a
// folder. What goes into a Catalog must have its defaults and be valid; nothing
// is checked again here.
//
// A watcher is told states, not histories: it holds no more than the set of the
// names that it has yet to look at, so however slow it is, it costs memory in
// proportion to the functions that exist or that it knows, and it sees the
// latest state when it comes to it. Only the identity of a function is never
// skipped over: a watcher that knows one UID under a name hears that this one
// is gone before it hears of another.
package catalog
