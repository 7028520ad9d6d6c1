// Package cluster tests Windlass on a real Kubernetes cluster: its specs state
// what users of the chart may rely on. It has tests only.
//
// It has the build tag e2e, because it takes minutes; `make e2e` runs it. As root it starts a cluster of
// three nodes of its own (see test/cluster), builds the images from the checkout,
// installs the chart, and removes all that at the end, after a failure, and on an
// interrupt.
//
// These variables change that:
//
//   - KUBECONFIG: the path of a kubeconfig. The suite runs against that cluster,
//     needs no root, and builds no image. It installs the chart into the namespace
//     windlass and uninstalls it at the end, unless a release is there, which it
//     uses as it is. Specs that stop machines are skipped.
//   - WINDLASS_E2E_REGISTRY and WINDLASS_E2E_TAG: where that cluster gets its
//     images: REGISTRY/windlass:TAG, and the same for podagent, runtime-python3.13,
//     runtime-nodejs22.x and test-functions.
//   - WINDLASS_E2E_KEEP: a folder for the state of the suite's own cluster, which
//     is kept for the next run. That one builds and loads the images again and
//     upgrades the release. Its path has at most 48 bytes; `cluster down --state
//     FOLDER` ends it.
//   - WINDLASS_E2E_INSTALLED=1: use the kept cluster and its release as they are,
//     to try specs again at once.
//   - WINDLASS_E2E_EDITS: how often code is edited under load, 15 times by default.
//   - WINDLASS_E2E_QUICK=1: repeat less often what is repeated to see what is rare,
//     or for its figures.
//   - WINDLASS_E2E_DUMP: a folder for what is known of a failure: objects, events
//     and logs. By default one is made below the folder for temporary files.
package cluster
