package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/internal/localapi"
)

// targetKind is where a verb looks for Windlass.
type targetKind int

const (
	// targetLocal is the Windlass of a data folder.
	targetLocal targetKind = iota
	// targetCluster is that of a kubeconfig's context.
	targetCluster
	// targetEither is the local one, or that of the kubeconfig if no local one runs.
	targetEither
)

// finder finds the Windlass that a verb is about, and names it and its functions as
// this user does.
type finder struct {
	*host
	// connect makes the client for a cluster.
	connect func(*kubeclient.Access) (*kubeclient.Client, error)
	// plugin means that kubectl runs this: it is about a cluster only.
	plugin bool
	// program is how this user starts this program; empty for windlass.
	program string
	// dataDir, namespace and flags are flags.
	dataDir   string
	namespace string
	flags     clusterFlags
	// settingsContext is the context from the settings, if they name one.
	settingsContext string
	// home is the namespace of functions that are named without one, inCluster
	// says that the verb is about a cluster, and byDefault that nothing but
	// what was there has made it so. They are known once there is a target.
	home      string
	inCluster bool
	byDefault bool
}

func newFinder(h *host) *finder {
	return &finder{host: h, home: v1alpha1.DefaultNamespace,
		connect: func(access *kubeclient.Access) (*kubeclient.Client, error) {
			return kubeclient.New(access, h.Err)
		}}
}

// addFlags adds the flags that say which Windlass a verb is about.
func (f *finder) addFlags(flags *pflag.FlagSet) {
	if !f.plugin {
		flags.StringVar(&f.dataDir, "data-dir", "",
			"`folder` of the running Windlass (default $WINDLASS_DATA_DIR, or else windlass in $XDG_STATE_HOME or ~/.local/state)")
	}
	flags.StringVar(&f.flags.context, "context", "", "`name` of the kubeconfig's context, for a Windlass in a cluster")
	flags.StringVar(&f.flags.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default $KUBECONFIG, or else ~/.kube/config)")
	flags.StringVarP(&f.namespace, "namespace", "n", "",
		"`namespace` of the function (default: the context's, and \""+v1alpha1.DefaultNamespace+"\" on this machine)")
}

// chooseTarget says where to look, by flags, environment and settings.
func (f *finder) chooseTarget() (targetKind, error) {
	flag := ""
	switch {
	case f.flags.context != "":
		flag = "--context"
	case f.flags.kubeconfig != "":
		flag = "--kubeconfig"
	}
	switch {
	case flag != "" && f.dataDir != "":
		return 0, usagef("%s means a cluster, and --data-dir a Windlass on this machine; remove one of the two", flag)
	case flag != "" || f.plugin:
		return targetCluster, nil
	case f.dataDir != "" || f.getenv("WINDLASS_DATA_DIR") != "":
		return targetLocal, nil
	}
	settings, err := f.settings()
	switch {
	case err != nil:
		return 0, err
	case settings.Context != "":
		f.settingsContext = settings.Context
		return targetCluster, nil
	case settings.DataDir != "":
		return targetLocal, nil
	}
	return targetEither, nil
}

// target is the Windlass that flags, environment and what is there name.
func (f *finder) target(ctx context.Context) (*target, error) { return f.targetOr(ctx, nil) }

// targetOr is target, or otherwise, unless that is nil, if none can be found where no flag says that
// one is.
func (f *finder) targetOr(ctx context.Context, otherwise *target) (*target, error) {
	if f.namespace != "" && len(validation.IsDNS1123Label(f.namespace)) > 0 {
		return nil, usagef("%q is not a namespace: its name is made of lower-case letters, digits and hyphens; correct --namespace", f.namespace)
	}
	where, err := f.chooseTarget()
	if err != nil {
		return nil, err
	}
	t, err := f.reach(ctx, where)
	switch {
	case err == nil:
	case otherwise != nil && f.flags.context == "" && f.flags.kubeconfig == "":
		t = otherwise
	default:
		return nil, err
	}
	return t, f.adopt(t)
}

// adopt makes t the target of this command: functions without a namespace are in the one of
// the settings, or else in the target's.
func (f *finder) adopt(t *target) error {
	settings, err := f.settings()
	if err != nil {
		return err
	}
	t.namespace = cmp.Or(settings.Namespace, t.namespace)
	f.home, f.inCluster = t.namespace, t.inCluster()
	return nil
}

func (f *finder) reach(ctx context.Context, where targetKind) (*target, error) {
	switch where {
	case targetCluster:
		return f.cluster()
	case targetLocal:
		dir, err := f.resolveDataDir()
		if err != nil {
			return nil, err
		}
		return localTarget(dir), nil
	}
	dir, noDir := f.resolveDataDir()
	if noDir == nil {
		// A Windlass whose socket has too long a path cannot run either.
		_, noDir = localapi.SocketPath(dir)
	}
	if noDir == nil {
		err := localapi.NewClient(dir).Probe(ctx)
		var notRunning *localapi.NotRunningError
		switch {
		case err == nil:
			return localTarget(dir), nil
		case !errors.As(err, &notRunning):
			// One may run there. A verb must not change a cluster in its place.
			return nil, fmt.Errorf("%w; for a Windlass in a cluster, add --context", err)
		}
	}
	switch {
	case kubeclient.NamesCluster(f.kubeconfigFiles()):
		f.byDefault = true
		t, err := f.cluster()
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, noneHere)
		}
		return t, nil
	case noDir != nil:
		return nil, noDir
	}
	return nil, fmt.Errorf("no Windlass runs with the data folder %s, and no kubeconfig names a cluster either: "+
		"start one with windlass up, name its folder with --data-dir, or name a cluster with --kubeconfig or --context", dir)
}

// noneHere is for errors of a cluster to which nothing but the lack of a local Windlass has led.
const noneHere = "no Windlass runs on this machine either: start one with windlass up"

// localOnly refuses flags of a cluster for verbs that run on this machine.
func (f *finder) localOnly(verb string) error {
	return refuseFlags(fmt.Sprintf("%q, which runs on this machine", verb),
		givenFlag{"context", f.flags.context}, givenFlag{"kubeconfig", f.flags.kubeconfig}, givenFlag{"namespace", f.namespace})
}

// offline refuses flags that say which Windlass, for verbs that ask none.
func (f *finder) offline(verb string) error {
	return refuseFlags(fmt.Sprintf("%q, which asks no Windlass", verb),
		givenFlag{"context", f.flags.context}, givenFlag{"kubeconfig", f.flags.kubeconfig}, givenFlag{"data-dir", f.dataDir})
}

// givenFlag is a flag and its value, which is empty if it was not given.
type givenFlag struct{ name, value string }

func refuseFlags(with string, flags ...givenFlag) error {
	for _, flag := range flags {
		if flag.value != "" {
			return usagef("--%s has no effect with %s; remove it", flag.name, with)
		}
	}
	return nil
}

// noteContext names the cluster that is about to be changed, if the user has not named it.
func (f *finder) noteContext(t *target) {
	switch {
	case f.byDefault:
		fmt.Fprintf(f.Err, "using the cluster of the context %s, because no Windlass runs on this machine\n", t.context)
	case f.settingsContext != "":
		fmt.Fprintf(f.Err, "using the cluster of the context %s, because the settings name it\n", t.context)
	}
}
