package podspec

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

const (
	// SpareTaskRoot is the folder of a function's code in an instance that was a
	// spare one: a folder that is made when the code comes.
	SpareTaskRoot = "/tmp/task"
)

// Spare is the pod of a spare instance of a pool. The Function of the input is
// warmpool.PoolFunction, and the ClusterRuntime must be set. It is the pod of a function
// without the parts that name the function.
func Spare(in Input) (*corev1.Pod, error) {
	pool, ok := warmpool.PoolOf(string(in.Function.UID))
	if !ok || in.Runtime == nil {
		return nil, fmt.Errorf("there is no ClusterRuntime %q: spare instances need one", in.Function.Spec.Template.RuntimeRef.Name)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:      Name(in.Function.Name, string(in.Function.UID), in.CID),
			Namespace: pool.Namespace,
			Labels: map[string]string{
				wellknown.LabelRuntime:   pool.Runtime,
				wellknown.LabelPool:      pool.Name,
				wellknown.LabelScheduler: pool.Scheduler,
				wellknown.LabelCID:       string(in.CID),
				wellknown.LabelRevision:  in.Function.Revision(),
				wellknown.LabelManagedBy: wellknown.ManagedBy,
				wellknown.LabelComponent: wellknown.ComponentSpare,
			},
			Annotations:     annotations(in.Decided),
			OwnerReferences: []metav1.OwnerReference{owner(v1alpha1.KindClusterRuntime, in.Runtime.Name, in.Runtime.UID)},
		},
		Spec: podSpec(in),
	}
	agent, function := agentContainer(in), functionContainer(in)
	agent.Env = spareAgentEnv(in)
	function.Env = spareEnv(in)
	function.WorkingDir = "/tmp"
	pod.Spec.Containers = []corev1.Container{agent, function}
	return pod, nil
}

func spareAgentEnv(in Input) []corev1.EnvVar {
	return append(variables(agentenv.Config{
		Spare:          true,
		Scheduler:      in.Config.SchedulerAddr,
		Owner:          in.Config.OwnerAddr,
		Node:           in.Config.NodeAddr,
		NodeTokenFile:  nodeTokenPath(in.Config),
		TokenFile:      path.Join(agentTokenDir, tokenFile),
		CA:             in.Config.CA,
		TLSDomain:      in.Config.TLSDomain,
		DrainListen:    ":" + strconv.Itoa(int(DrainPort)),
		Protocol:       string(in.Function.Spec.Template.Protocol),
		Port:           int(LambdaPort),
		StartupTimeout: in.Function.Spec.Template.StartupTimeout.Duration,
	}.Environ()), collectBefore(in.Config))
}

// spareEnv is the environment of the runtime before it has a function.
func spareEnv(in Input) []corev1.EnvVar {
	env := append([]string{"HOME=/tmp"}, pairs(in.Runtime.Spec.Env)...)
	return variables(append(env,
		"WINDLASS_RUNTIME_API="+v1alpha1.ContractV1,
		"WINDLASS_SPARE=true",
		"LAMBDA_TASK_ROOT="+SpareTaskRoot,
		"AWS_LAMBDA_RUNTIME_API="+runtimeAPI,
	))
}

// Assignment is what a spare instance is given when a function takes it.
type Assignment struct {
	// Variables are the environment, each name once.
	Variables []v1alpha1.EnvVar
	// Files are the function's code, by their paths below SpareTaskRoot.
	Files map[string][]byte
}

// AssignmentOf is what makes a spare instance that of the input's function. The pod
// of such an instance would have the same variables, but for the folder, and the
// same files.
func AssignmentOf(in Input) Assignment {
	return Assignment{
		Variables: lastOfEach(functionPairs(in, SpareTaskRoot)),
		Files: map[string][]byte{
			path.Clean(codeFile(in.Function.Spec.Template.Handler, in.Runtime.Spec.FileExtension)): []byte(inlineCode(in.Function)),
		},
	}
}

// AssignPatch is the change by which a function takes a spare instance, as a JSON patch
// (RFC 6902). It is refused, and changes nothing, if the pod is not a spare
// instance any more or belongs to another scheduler.
func AssignPatch(in Input, pool warmpool.Pool, podUID types.UID) ([]byte, error) {
	m := podMeta(in)
	type step struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	label := func(name string) string { return "/metadata/labels/" + strings.ReplaceAll(name, "/", "~1") }
	steps := []step{
		{"test", "/metadata/uid", podUID},
		{"test", label(wellknown.LabelComponent), wellknown.ComponentSpare},
		{"test", label(wellknown.LabelRuntime), pool.Runtime},
		{"test", label(wellknown.LabelPool), pool.Name},
		{"test", label(wellknown.LabelScheduler), pool.Scheduler},
		{"replace", "/metadata/ownerReferences", m.OwnerReferences},
		{"add", "/metadata/annotations/" + strings.ReplaceAll(AnnotationDecided, "/", "~1"), m.Annotations[AnnotationDecided]},
	}
	for _, name := range []string{
		wellknown.LabelFunction, wellknown.LabelFunctionUID, wellknown.LabelCID,
		wellknown.LabelRevision, wellknown.LabelRevisionUID, wellknown.LabelComponent,
	} {
		steps = append(steps, step{"add", label(name), m.Labels[name]})
	}
	return json.Marshal(steps)
}
