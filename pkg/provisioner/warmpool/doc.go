// Package warmpool decides how many spare instances each warm pool has, and which pool a
// function takes one from. A spare instance has loaded a ClusterRuntime and has no function yet.
//
// Invariants of Decide:
//
//   - There are never more spare instances than the target.
//   - It creates none while functions lack room, and one at a time while spare instances fail to
//     start.
//   - It replaces assigned ones at once, a few at a time.
//
// A ClusterRuntime names its pools. Each scheduler keeps its part of a pool in each namespace.
// The rest of the scheduler treats that part as a function without calls, which PoolFunction
// makes. Share computes the size of a part; the parts of all schedulers add up to the pool's
// size without any communication.
//
// Choose picks the pool for a function. It picks none if the pod of the spare instance would
// have to differ from the pod that the function needs.
package warmpool
