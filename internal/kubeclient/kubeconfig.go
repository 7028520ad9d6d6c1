package kubeclient

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windlass-dev/windlass/internal/buildinfo"
)

// Config says which cluster.
type Config struct {
	// Kubeconfig is a file that must exist; empty means Files.
	Kubeconfig string
	// Files are merged as kubectl does; those that do not exist are skipped.
	// If none exists, and this runs in a pod, the pod's cluster and service
	// account are used.
	Files []string
	// Context is one of the kubeconfig's; empty means its current one.
	Context string
}

// Access is a cluster, and as whom to use it.
type Access struct {
	// Context is the context's name, or "in this pod's cluster".
	Context string
	// Namespace is that of the context.
	Namespace string
	// REST is how to reach it.
	REST *rest.Config
}

// podContext stands for the cluster that this process runs in.
const podContext = "of this pod"

// Load reads the kubeconfig. It connects to nothing.
func Load(config Config) (*Access, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: config.Kubeconfig, Precedence: config.Files}
	rules.WarnIfAllMissing = false
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: config.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, unreadable(config, err)
	}
	name := cmp.Or(config.Context, raw.CurrentContext)
	if err := checkContext(config, &raw, name); err != nil {
		return nil, err
	}
	restConfig, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the context %s of the kubeconfig cannot be used: %w: correct it, or name another with --context", cmp.Or(name, podContext), err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, unreadable(config, err)
	}
	restConfig.UserAgent = "windlass/" + buildinfo.Version
	return &Access{Context: cmp.Or(name, podContext), Namespace: namespace, REST: restConfig}, nil
}

func checkContext(config Config, raw *clientcmdapi.Config, name string) error {
	if name == "" && len(raw.Contexts) == 0 && config.Kubeconfig == "" {
		if _, err := rest.InClusterConfig(); err == nil {
			return nil
		}
		return errors.New("no kubeconfig names a cluster: name one with --kubeconfig or $KUBECONFIG")
	}
	var known []string
	for context := range raw.Contexts {
		known = append(known, context)
	}
	slices.Sort(known)
	if name == "" {
		return fmt.Errorf("the kubeconfig has no current context: choose one of %v with --context, or with kubectl config use-context", known)
	}
	if _, ok := raw.Contexts[name]; !ok {
		return fmt.Errorf("the kubeconfig has no context %s: it has %v; choose one with --context", name, known)
	}
	return nil
}

// Contexts are the names of the contexts in a kubeconfig; none if it cannot be read.
func Contexts(config Config) (names []string) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: config.Kubeconfig, Precedence: config.Files}
	rules.WarnIfAllMissing = false
	raw, err := rules.Load()
	if err != nil {
		return nil
	}
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func unreadable(config Config, err error) error {
	if config.Kubeconfig != "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: there is no such kubeconfig; correct --kubeconfig", config.Kubeconfig)
	}
	return fmt.Errorf("the kubeconfig cannot be read: %w; correct it, or name another with --kubeconfig", err)
}

// NamesCluster reports whether any of the files names a cluster, or cannot be read. Tools that
// delete their cluster leave a kubeconfig without any.
func NamesCluster(files []string) bool {
	raw, err := (&clientcmd.ClientConfigLoadingRules{Precedence: files}).Load()
	return err != nil || len(raw.Contexts) > 0
}

// warnTo has what the API server warns of written to w, each warning once.
func (a *Access) warnTo(w io.Writer) *rest.Config {
	config := rest.CopyConfig(a.REST)
	config.WarningHandler = rest.NewWarningWriter(w, rest.WarningWriterOptions{Deduplicate: true})
	config.QPS = -1
	return config
}
