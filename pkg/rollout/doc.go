// Package rollout decides which revisions of a function there are, and which calls go to
// which of them.
//
// Decide looks at a Function and its FunctionRevisions, and says what has to become of
// them: a revision for a template that has none, the traffic, the step of a rollout, and
// which revisions are beyond the history. It promises that weights are 100 together,
// that calls go to revisions that exist, that none goes to a revision that is not proven
// while another is, unless the function's author wants that, and that what was carried
// out decides nothing more.
//
// Compose says what the schedulers and gateways make of the same objects: for each
// revision a unit, a function of its own with its own queue and instances; and the routes,
// by which a gateway picks the unit of a call when it admits it. A call belongs to one
// revision from then on.
//
// Conditions says what conditions a Function and its revisions have.
package rollout
