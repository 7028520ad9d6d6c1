// Package cgroups moves instances between two bands of processor time, and measures how much
// each has used, by files of the kernel's control groups.
//
// A group in the low band gets only what the normal ones beside it leave of the processors:
// cpu.idle is 1, or where the kernel is older than 5.15, its weight is the least that there is.
// A Hold keeps a batch group back: it stops its processes by the freezer, and says on which cores they
// run by its cpuset. Nothing else changes a group, and nothing here needs a capability: the files' owner may write
// them. Waited is for how long a group waited for a core, where the kernel says that.
//
// Detect finds out what a machine allows and says it in a sentence. A Tree opens groups: those of
// pods, by UID, in the trees of kubelets that name them for themselves or for systemd; and those
// that it creates for the processes of a local Windlass.
//
// Promises:
//
//   - Only groups of pods and those that Create made are ever written to, never one of a QoS
//     class or a root.
//   - A group's weight outlives the low band. The kernel forgets it while cpu.idle is 1, and
//     refuses it with EINVAL, so it is written to the Journal before and set again after.
//   - A group that is low is in the Journal. Whatever ends the node agent, kill -9 too, its
//     Guardian sets all of these groups to normal, or the next OpenJournal does. Watch also ends one that
//     hangs.
//   - So is a group whose Hold has stopped it, or lets it run on some cores only, and it is let go in
//     the same ways. Groups of pods are never stopped: in a pod only the container stops that computes
//     beside the agent's, and only if there is exactly one.
//   - A pod is never above its own weight for longer than it takes to write two files.
//
// Version 1 of control groups is tested on a kernel. Version 2 has only been tried over trees of
// files, among them a fake one that behaves as the kernel's documentation says.
package cgroups
