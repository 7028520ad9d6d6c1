// Package decisionlog keeps recent decisions of the autoscaler and explains them: what was
// decided, why, and what was done.
//
// Invariants of a Log:
//
//   - It adds an entry if a decision changed something, has another reason than the last one,
//     or had another outcome. It only counts repetitions.
//   - It holds no more than its Bounds, for one function and in total. It drops entries of the
//     functions with the oldest decisions first, so that an idle function finally costs
//     nothing.
//
// A Report of one function, or a LatestReport of many, is the log as plain JSON. It contains
// the explanations as text, because a command of another version may not know all reasons.
//
// A Log holds no lock; its user guards it.
package decisionlog
