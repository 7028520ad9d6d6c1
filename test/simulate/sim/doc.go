// Package sim drives the cores of Windlass through faults in virtual time: gateways,
// schedulers, instances, etcd and clients, in one goroutine, from a seed.
//
// What decides is the product's own code: the cores of the gateway, of the scheduler and
// of the agent, the map of owners and the pulses of schedulers, and the core that keeps
// slots. What stands around them here is what their
// shells do, written down once more: thin, without locks, in the order that chance
// gives it. So a simulation says whether the decisions hold together, and not whether
// the shells carry them out.
//
// A World has machines with clocks of their own that run at different rates, links
// that are slow, lose, or are cut one way or both, streams that break on one side or
// both, processes that die, stand still or are told to stop, machines that go dark,
// and an etcd that is away, slow, wiped, restored, compacted or written by hand.
//
// After every step the rules of this package are checked, see Rule, and in the end,
// when no more faults come, that everything is answered and comes to rest. The first
// rule that is broken ends the simulation. The same Config always gives the same
// simulation, down to the hash of its trace.
//
// test/simulate/mutants breaks the product on purpose, to see that the simulator notices.
package sim
