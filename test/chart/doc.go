// Package chart tests the Helm chart in charts/windlass: what it renders, which
// mistakes in values it refuses and how it says so, and, against a real API
// server, that it can be installed, upgraded and uninstalled, and what the
// accounts that it makes may do.
//
// The tests need helm, Kubernetes and etcd, so they have the build tag apiserver;
// make verify-chart builds the programs and runs them. TestConform, which downloads a
// lot and has the tag conform besides, validates what is rendered against the API of
// several releases of Kubernetes.
package chart
