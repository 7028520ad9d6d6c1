// Package attacks attacks a gateway and a scheduler that are put together as in a
// cluster: certificates and the table of methods on the wire, tokens of pods that
// are verified offline, and the limits of the servers. What is played are the
// cluster's API server and the instances.
//
// Each attack has a world of its own. Afterwards an honest call must be answered,
// nothing of the attack may have run, its content must not be in the log, whose
// lines are JSON and short, and there must be hardly more metrics than before. Of
// most attacks a counter must tell.
package attacks
