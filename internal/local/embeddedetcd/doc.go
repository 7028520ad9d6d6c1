// Package embeddedetcd runs an etcd inside this process, for local mode and for tests of etcd's
// clients.
//
// Only this process can reach it. It opens no port and no socket; its one client calls it as
// functions. An etcd that listens without authentication would let every user of the machine
// change the ownership of slots.
//
// It stores nothing. Nothing that Windlass keeps in etcd outlives the processes that wrote it, so
// the etcd starts empty every time and never waits for the disk. It is ready in about a tenth of
// a second and takes some 5 MiB of memory.
//
// Two settings reach beyond one server: etcd adds its metrics to the default Prometheus registry,
// and the size of its log segments is a variable of the whole process, which Start lowers.
package embeddedetcd
