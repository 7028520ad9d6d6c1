// Package warmpool decides about the spare instances of warm pools: instances in which
// a Runtime has loaded, and no function yet.
//
// A Runtime has pools by name, and each scheduler its part of one in each namespace. To
// those who order and follow instances that is a function that gets no calls:
// PoolFunction is that function. A real function takes from the pool that Choose names.
// There is one only if nothing is found in which the pod of such an instance would have
// to be another one.
//
// Share says how many of a pool's instances a scheduler keeps, such that all
// schedulers come to shares that add up to the pool's size without asking each
// other. Decide says how many to create or to remove now. It promises that there
// are never more than the target; that none is created while functions lack room or
// while spare instances do not start; and that what was taken is replaced at once,
// some at a time.
package warmpool
