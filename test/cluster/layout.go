package cluster

import "path/filepath"

// layout names the files of a cluster below its state folder.
type layout struct{ state string }

func (l layout) record() string          { return filepath.Join(l.state, "cluster.json") }
func (l layout) lock() string            { return filepath.Join(l.state, "lock") }
func (l layout) kubeconfig() string      { return filepath.Join(l.state, "kubeconfig") }
func (l layout) logs() string            { return filepath.Join(l.state, "logs") }
func (l layout) log(name string) string  { return filepath.Join(l.logs(), name+".log") }
func (l layout) pki(file string) string  { return filepath.Join(l.state, "pki", file) }
func (l layout) etc(file string) string  { return filepath.Join(l.state, "etc", file) }
func (l layout) etcd() string            { return filepath.Join(l.state, "etcd") }
func (l layout) pause() string           { return filepath.Join(l.state, "pause.tar") }
func (l layout) registries() string      { return filepath.Join(l.state, "registries") }
func (l layout) node(name string) string { return filepath.Join(l.state, "nodes", name) }

func (l layout) nodeFile(node, file string) string { return filepath.Join(l.node(node), file) }

// socket is where the machine reaches a node's containerd.
func (l layout) socket(node string) string {
	return l.nodeFile(node, "disk/run/containerd/containerd.sock")
}
