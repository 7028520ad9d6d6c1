package podspec

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/provisioner/spare"
)

const (
	// SpareTaskRoot is the folder of a function's code in an instance that was a
	// spare one: a folder that is made when the code comes.
	SpareTaskRoot = "/tmp/task"

	// spareVariable tells the runtime that there is no function yet.
	spareVariable = "WINDLASS_SPARE"
)

// Spare is the pod of a spare instance of a pool. The Function of the input is the
// pool's, spare.PoolFunction, and the Runtime must be there. It is the pod of a
// function but for what tells which function.
func Spare(in Input) (*corev1.Pod, error) {
	pool, ok := spare.PoolOf(string(in.Function.UID))
	if !ok || in.Runtime == nil {
		return nil, fmt.Errorf("there is no Runtime %q: spare instances need one", in.Function.Spec.Runtime)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:      Name(in.Function.Name, string(in.Function.UID), in.CID),
			Namespace: pool.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelPool:      pool.Runtime,
				v1alpha1.LabelScheduler: pool.Scheduler,
				v1alpha1.LabelCID:       string(in.CID),
				v1alpha1.LabelRevision:  in.Function.Revision(),
				v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
				v1alpha1.LabelComponent: v1alpha1.ComponentSpare,
			},
			Annotations:     annotations(in.Decided),
			OwnerReferences: []metav1.OwnerReference{owner(v1alpha1.KindRuntime, in.Runtime.Name, in.Runtime.UID)},
		},
		Spec: podSpec(in),
	}
	agent, function := agent(in), function(in)
	agent.Env = spareAgentEnv(in)
	function.Env = spareEnv(in)
	function.WorkingDir = "/tmp"
	pod.Spec.Containers = []corev1.Container{agent, function}
	return pod, nil
}

// SpareName says whether a pod of that name can have been a spare instance of a
// Runtime.
func SpareName(name, runtime string) bool {
	whole := spare.PoolFunction(spare.Pool{Runtime: runtime}, &v1alpha1.Runtime{Spec: v1alpha1.RuntimeSpec{WarmPool: &v1alpha1.WarmPool{}}}).Name
	return strings.HasPrefix(name, whole[:min(len(whole), spareNamePrefix)])
}

func spareAgentEnv(in Input) []corev1.EnvVar {
	return variables(append(agentConfig(in).Environ(), spareVariable+"=true"))
}

// spareEnv is the environment of the runtime before it has a function.
func spareEnv(in Input) []corev1.EnvVar {
	env := append([]string{"HOME=/tmp"}, pairs(in.Runtime.Spec.Env)...)
	return variables(append(env,
		spareVariable+"=true",
		"LAMBDA_TASK_ROOT="+SpareTaskRoot,
		"AWS_LAMBDA_RUNTIME_API="+lambdaAddress,
	))
}
