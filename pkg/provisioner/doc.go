// Package provisioner launches instances through a Driver, follows each of them to its end, and
// backs off from functions whose instances do not start.
//
// Invariants:
//
//   - Launching never waits for the Driver.
//   - A launch counts from the moment that it is requested, so no tick repeats it.
//   - Each launched instance is reported once: as started, failed, lost or gone.
//   - The Provisioner stops an instance that does not start, falls silent, or does not end
//     when asked to.
//   - CIDs consist of the owner's epoch and a sequence number, so that the same launch always
//     has the same name.
//
// The Inventory is the one record of instances. An instance is creating from its launch until
// its agent's first pull, then created until it leaves or is lost. Each function has an entry
// with its own lock.
//
// A spare instance of a warm pool belongs to the pool, which counts as a function without calls
// (see package warmpool). Assign makes it an instance of a real function.
//
// Beside the Provisioner, a NodeView reads the nodes, an Authenticator checks agents, a
// ChangeTracker says what changed since its reader last looked, and an Auditor compares the
// inventory with the Driver. Package scheduler decides how many instances to launch and where.
package provisioner
