package lab

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// Namespace is where the lab's functions are.
const Namespace = "faults"

// Cluster is the way to the API server, as its administrator.
type Cluster struct {
	Config *rest.Config
	Core   kubernetes.Interface
	// Objects knows the kinds of Windlass too.
	Objects client.Client
}

// startAPI starts the API server and its own etcd, which share a space, and
// writes the kubeconfig that all roles use.
func (l *Lab) startAPI(ctx context.Context) (err error) {
	ca, err := newAuthority("kubernetes-lab")
	if err != nil {
		return err
	}
	if err := ca.folder(l.Config.data("api"), identity{user: "kube-apiserver", addrs: []netip.Addr{apiAddr}}); err != nil {
		return err
	}
	if err := ca.folder(l.Config.data("admin"), identity{user: "admin", groups: []string{"system:masters"}}); err != nil {
		return err
	}
	if err := tokenKeys(l.Config.data("api")); err != nil {
		return err
	}
	if l.API, err = l.open(ctx, "api", 2, kubernetesProgram("kube-apiserver"), nil, l.apiArguments); err != nil {
		return err
	}
	l.API.ready = fmt.Sprintf("https://%s/readyz", hostPort(apiAddr, apiPort))
	l.apiEtcd = &Member{Space: l.API.Space, api: l.probe, ready: fmt.Sprintf("http://%s/health", hostPort(apiAddr, etcdClientPort)), program: Program{
		Path: kubernetesProgram("etcd"), Log: l.Config.logOf("api-etcd"), Arguments: l.apiEtcdArguments(),
	}}
	for _, m := range []*Member{l.apiEtcd, l.API} {
		if err := m.Revive(ctx); err != nil {
			return err
		}
	}
	return l.furnish(ctx)
}

func (l *Lab) apiEtcdArguments() []string {
	url := "http://" + hostPort(apiAddr, etcdClientPort)
	return []string{
		"--name=api-etcd", "--data-dir=" + l.Config.data("api-etcd"), "--log-level=warn", "--unsafe-no-fsync",
		"--listen-client-urls=" + url, "--advertise-client-urls=" + url, "--listen-peer-urls=http://127.0.0.1:2380",
	}
}

func (l *Lab) apiArguments(*Member) []string {
	file := func(name string) string { return l.Config.data("api", name) }
	return []string{
		"--advertise-address=" + apiAddr.String(), fmt.Sprintf("--secure-port=%d", apiPort),
		"--etcd-servers=http://" + hostPort(apiAddr, etcdClientPort), "--service-cluster-ip-range=10.89.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + file("tokens.pub"), "--service-account-signing-key-file=" + file("tokens.key"),
		"--client-ca-file=" + file("ca.crt"), "--tls-cert-file=" + file("tls.crt"), "--tls-private-key-file=" + file("tls.key"),
		// The kubelet is the lab's own and answers nobody.
		"--cert-dir=" + l.Config.data("api"), "--authorization-mode=RBAC", "--profiling=false",
	}
}

// furnish writes the kubeconfig and creates what is in every cluster.
func (l *Lab) furnish(ctx context.Context) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["lab"] = &clientcmdapi.Cluster{Server: "https://" + hostPort(apiAddr, apiPort), CertificateAuthority: l.Config.data("api", "ca.crt")}
	kubeconfig.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificate: l.Config.data("admin", "tls.crt"), ClientKey: l.Config.data("admin", "tls.key")}
	kubeconfig.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "admin"}
	kubeconfig.CurrentContext = "lab"
	if err := clientcmd.WriteToFile(*kubeconfig, l.Config.Kubeconfig()); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.Config.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	l.Cluster = &Cluster{Config: config}
	if l.Cluster.Core, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{crds}, ErrorIfPathMissing: true}); err != nil {
		return err
	}
	if l.Cluster.Objects, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return l.Cluster.Namespace(ctx, Namespace)
}

// Redefine changes the fields of the template in the definitions of Functions and
// FunctionRevisions.
func (c *Cluster) Redefine(ctx context.Context, change func(template map[string]any)) error {
	for _, name := range []string{"functions", "functionrevisions"} {
		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind("CustomResourceDefinition")
		if err := c.Objects.Get(ctx, client.ObjectKey{Name: name + "." + v1alpha1.GroupName}, definition); err != nil {
			return err
		}
		versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		if err != nil {
			return err
		}
		for _, version := range versions {
			at := version.(map[string]any)
			for _, step := range []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "template", "properties"} {
				at = at[step].(map[string]any)
			}
			change(at)
		}
		if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
			return err
		}
		if err := c.Objects.Update(ctx, definition); err != nil {
			return err
		}
	}
	return nil
}

// Namespace creates a namespace with the account that pods have by default,
// which a controller would make.
func (c *Cluster) Namespace(ctx context.Context, name string) error {
	meta := metav1.ObjectMeta{Name: name}
	if _, err := c.Core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := c.Core.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	return err
}

// schedulersService is the Service by which the controller finds the schedulers.
const schedulersService = "schedulers"

// endpoints says what a controller of Services would say of the schedulers.
func (c *Cluster) endpoints(ctx context.Context, schedulers []netip.Addr) error {
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	slice.Namespace, slice.Name = Namespace, schedulersService
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: schedulersService}
	slice.Ports = []discoveryv1.EndpointPort{{Name: new("wire"), Port: new(int32(wirePort))}}
	for _, addr := range schedulers {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr.String()}})
	}
	return c.Objects.Create(ctx, slice)
}

// Function creates a function that runs the lab's own function program, with
// what edit changes of it, and returns it with its defaults.
func (c *Cluster) Function(ctx context.Context, name string, edit func(*v1alpha1.FunctionSpec)) (*v1alpha1.Function, error) {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	fn.Spec.Template.Image = ImageFunction
	edit(&fn.Spec)
	err := c.Objects.Create(ctx, fn)
	v1alpha1.Default(fn)
	return fn, err
}

// Get reads a function of the lab's namespace.
func (c *Cluster) Get(ctx context.Context, name string, into *v1alpha1.Function) error {
	return c.Objects.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, into)
}

// goneWithin bounds how long a function that is deleted may take to drain.
const goneWithin = time.Minute

// Delete removes a function of the lab's namespace, and returns when its instances have
// ended and it is gone.
func (c *Cluster) Delete(ctx context.Context, name string) error {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	if err := client.IgnoreNotFound(c.Objects.Delete(ctx, fn)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	return sleep.Until(ctx, askEvery, func() (bool, error) {
		return apierrors.IsNotFound(c.Get(ctx, name, fn)), nil
	})
}

// NamespaceWithQuota creates a namespace whose quota lets no pod be created,
// unless it is there. No controller counts what is used of the quota, so the
// lab says that itself.
func (c *Cluster) NamespaceWithQuota(ctx context.Context, name string) error {
	if err := c.Namespace(ctx, name); apierrors.IsAlreadyExists(err) {
		return nil
	} else if err != nil {
		return err
	}
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "no-pods"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	quota, err := c.Core.CoreV1().ResourceQuotas(name).Create(ctx, quota, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	_, err = c.Core.CoreV1().ResourceQuotas(name).UpdateStatus(ctx, quota, metav1.UpdateOptions{})
	return err
}
