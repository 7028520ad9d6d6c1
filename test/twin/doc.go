// Package twin compares the simulator of provisioning with what it simulates: the
// scheduler, its provisioner and its wire, in a bubble of virtual time, under the same
// calls. They must order the same numbers of instances at the same times.
package twin
