// Package apitest gives tests a real Kubernetes API: a kube-apiserver and an etcd
// without nodes. Tests that use it have the build tag apiserver, which make
// test-apiserver gives after it has built the programs.
package apitest
