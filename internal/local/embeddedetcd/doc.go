// Package embeddedetcd runs an etcd in this process, for one that is alone on
// its machine: local mode, and tests of what talks to etcd.
//
// Nobody else can reach it. It opens no port and no socket; its one client
// calls it as functions. An etcd that listens without asking who is there would
// let every user of the machine change who owns what.
//
// It remembers nothing. Nothing that Windlass keeps in etcd outlives the
// processes that put it there, so it starts empty every time and never waits
// for the disk. That makes it ready in about a tenth of a second, for some
// 5 MiB of memory.
//
// Two settings reach beyond one server: etcd adds its metrics to the default
// Prometheus registry, and the size of its log segments is a variable of the
// whole process, which Start lowers.
package embeddedetcd
