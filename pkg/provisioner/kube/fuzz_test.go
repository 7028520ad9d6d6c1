package kube

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// FuzzPod reads pods that anybody who may create some can have made.
func FuzzPod(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"f-1","labels":{"windlass.dev/function":"f","windlass.dev/function-uid":"a","windlass.dev/revision":"00001","windlass.dev/revision-uid":"u","windlass.dev/cid":"00000001-000001","app.kubernetes.io/managed-by":"windlass"},
		"ownerReferences":[{"apiVersion":"windlass.dev/v1alpha1","kind":"FunctionRevision","name":"f-00001","uid":"u","controller":true}]},
		"status":{"phase":"Failed","reason":"OutOfcpu","message":"a\n","containerStatuses":[{"name":"function","state":{"terminated":{"exitCode":137,"reason":"OOMKilled","message":"x\ny"}}}]}}`))
	f.Add([]byte(`{"status":{"containerStatuses":[{"name":"agent","state":{"waiting":{"reason":"ImagePullBackOff"}},"lastState":{"terminated":{}}}],"conditions":[{"type":"DisruptionTarget"}]}}`))
	f.Add([]byte(`{"metadata":{"name":"spare-1","namespace":"default","labels":{"windlass.dev/component":"spare","windlass.dev/scheduler":"s","windlass.dev/runtime":"python3.13","windlass.dev/pool":"p","windlass.dev/cid":"00000001-hbeef-000001","app.kubernetes.io/managed-by":"windlass"},
		"ownerReferences":[{"apiVersion":"windlass.dev/v1alpha1","kind":"ClusterRuntime","name":"python3.13","uid":"r","controller":true}]}}`))
	f.Add([]byte(`{"metadata":{"name":"f-1","labels":{"windlass.dev/revision-uid":"u","windlass.dev/cid":"00000000000000000000000000000000000000000000000000000000000001","app.kubernetes.io/managed-by":"windlass"},
		"ownerReferences":[{"apiVersion":"windlass.dev/v1alpha1","kind":"FunctionRevision","name":"f-00001","uid":"u","controller":true}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		pod := &corev1.Pod{}
		if json.Unmarshal(text, pod) != nil {
			return
		}
		if of, valid := identity(pod); valid {
			_, ofPool := warmpool.PoolOf(of.functionUID)
			owned := false
			for _, owner := range pod.OwnerReferences {
				owned = owned || string(owner.UID) == of.functionUID || ofPool && owner.Name == pod.Labels[wellknown.LabelRuntime]
			}
			// A spare pod keeps its name when a function takes it.
			named := ofPool || pod.Labels[wellknown.LabelPool] != "" || pod.Name == podspec.Name(pod.Labels[wellknown.LabelFunction], of.functionUID, of.cid)
			if !owned || !named || of.cid == "" || pod.Labels[wellknown.LabelManagedBy] != wellknown.ManagedBy {
				t.Errorf("%s counts as %+v", text, of)
			}
		}
		classifyPod(pod, true)
		classifyPod(pod, false)
		classifyGone(pod)
		startedAt(pod)
	})
}
