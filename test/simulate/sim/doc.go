// Package sim drives the cores of Windlass through faults in virtual time: gateways, schedulers,
// instances, etcd and clients, in one goroutine, from a seed.
//
// All decisions are the product's own code: the cores of the gateway, of the scheduler and of the
// agent, the ownership map and the failure detectors, and the coordinator of slots. The shells
// around them are written again here: thin, without locks, in random order. So a simulation tests
// whether the decisions fit together, and not whether the product's shells carry them out.
//
// A World has machines whose clocks run at different rates; links that are slow, lose messages, or
// are cut one way or both; streams that break on one side or both; processes that die, pause or
// are asked to stop; machines that fail; and an etcd that is down, slow, wiped, restored,
// compacted or written by hand.
//
// After every step the simulation checks the rules of this package, see Rule. In the end, when no
// more faults come, it checks that every call is answered and that everything comes to rest. The
// first broken rule ends the simulation. The same Config always gives the same simulation, down to
// the hash of its trace.
//
// test/simulate/mutants breaks the product on purpose, to test that the simulator notices.
package sim
