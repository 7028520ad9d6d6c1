// Package attacks attacks a gateway and a scheduler that are composed as in a cluster: with
// certificates and the table of methods on the wire, tokens of pods that are verified offline, and
// the limits of the servers. The tests simulate the cluster's API server and the instances.
//
// Each attack has an environment of its own. Afterwards an honest call must be answered. Nothing
// of the attack may have run. Its content must not be in the log, whose lines are JSON and short.
// The number of metrics must hardly have grown, and for most attacks a counter must have risen.
package attacks
