package cluster_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/mtls"
)

// audience is the one of the tokens that agents show to schedulers.
const audience = "windlass-scheduler"

// tlsDomain is that of the certificates of the release.
const tlsDomain = mtls.Domain("windlass." + releaseNamespace + ".windlass")

// token is a token of the namespace's default account, for an audience. If pod is
// not nil, it is bound to it, as a token in the pod is.
func token(ctx context.Context, namespace, audience string, pod *corev1.Pod) string {
	GinkgoHelper()
	set, err := kubernetes.NewForConfig(world.config)
	Expect(err).NotTo(HaveOccurred())
	seconds := int64(600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds}}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	issued, err := set.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "default", request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return issued.Status.Token
}

// secret is the Secret with the certificate of a part of the release.
func secret(ctx context.Context, part string) map[string][]byte {
	GinkgoHelper()
	var s corev1.Secret
	Expect(world.api.Get(ctx, client.ObjectKey{Namespace: releaseNamespace, Name: "windlass-" + part + "-tls"}, &s)).To(Succeed())
	return s.Data
}

// asAgent are the credentials of who has the CA only.
func asAgent(ctx context.Context) credentials.TransportCredentials {
	GinkgoHelper()
	creds, err := mtls.AgentCredentials(secret(ctx, "scheduler")["ca.crt"], tlsDomain.Scheduler())
	Expect(err).NotTo(HaveOccurred())
	return creds
}

// asPart are the credentials of a part of the release.
func asPart(ctx context.Context, part string) credentials.TransportCredentials {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for name, content := range secret(ctx, part) {
		Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}
	loaded, err := mtls.Load(dir, slog.New(slog.DiscardHandler))
	Expect(err).NotTo(HaveOccurred())
	return loaded.ClientCredentials(tlsDomain.Scheduler())
}

// schedulerClient is a client of a scheduler.
type schedulerClient struct {
	agentwire.InstancesClient
	controlwire.SchedulerClient
}

// schedulers are connections to every scheduler.
func schedulers(ctx context.Context, creds credentials.TransportCredentials) (clients []schedulerClient) {
	GinkgoHelper()
	for _, pod := range listPods(ctx, releaseNamespace, client.MatchingLabels{"app.kubernetes.io/component": "scheduler"}) {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		address := net.JoinHostPort(pod.Status.PodIP, "9443")
		if !reachable(address) {
			address = forward(releaseNamespace, "pod/"+pod.Name, "9443")
		}
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		clients = append(clients, schedulerClient{agentwire.NewInstancesClient(conn), controlwire.NewSchedulerClient(conn)})
	}
	Expect(clients).NotTo(BeEmpty())
	return clients
}

// pull says hello to every scheduler as an instance and asks to leave, which is
// always answered. It returns what the owner of the function says: nil if that is
// an answer.
func pull(ctx context.Context, clients []schedulerClient, uid, cid, token string) error {
	GinkgoHelper()
	for _, scheduler := range clients {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		stream, err := scheduler.Pull(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, request := range []*agentwire.PullRequest{
			{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{FunctionUid: uid, Revision: "1", Cid: cid, Token: token}}},
			{Kind: &agentwire.PullRequest_Leave{Leave: &agentwire.LeaveRequest{IdleNs: 1}}},
		} {
			if err := stream.Send(request); err != nil {
				Expect(err).To(Equal(io.EOF)) // the refusal comes by Recv
			}
		}
		reply, err := stream.Recv()
		if reply.GetMoved() != nil {
			continue
		}
		return err
	}
	return fmt.Errorf("no scheduler owns the function %s", uid)
}

var _ = Describe("The identity", func() {
	It("of an instance is its own pod's token, and no other's", func(ctx SpecContext) {
		t, thief := newTenant(ctx), newTenant(ctx)
		two := func(s *v1alpha1.FunctionSpec) { s.Scaling.MinInstances = 2 }
		t.deploy(httpd("victim", two), httpd("neighbour"))
		thief.warm(httpd("thief"))
		t.warm(httpd("neighbour"))
		Eventually(t.created("victim"), soon).Should(Equal(2), t.explain("victim"))
		pods := t.living("victim")
		uid, cid := pods[0].Labels[wellknown.LabelRevisionUID], pods[0].Labels[wellknown.LabelCID]
		clients := schedulers(ctx, asAgent(ctx))

		for what, stolen := range map[string]string{
			"no token":                             "",
			"not a token":                          "eyJhbGciOiJub25lIn0.e30.",
			"the token of another namespace's pod": token(ctx, thief.namespace, audience, &thief.living("thief")[0]),
			"the token of another function's pod":  token(ctx, t.namespace, audience, &t.living("neighbour")[0]),
			"the token of another instance":        token(ctx, t.namespace, audience, &pods[1]),
			"its pod's token for another audience": token(ctx, t.namespace, "https://kubernetes.default.svc", &pods[0]),
			"a token that is bound to no pod":      token(ctx, t.namespace, audience, nil),
			"its pod's token with another's signature": mixed(
				token(ctx, t.namespace, audience, &pods[0]), token(ctx, t.namespace, audience, &pods[1])),
		} {
			Expect(status.Code(pull(ctx, clients, uid, cid, stolen))).To(Equal(codes.Unauthenticated), what)
		}
		// It takes the place of the agent, which comes back.
		Expect(pull(ctx, clients, uid, cid, token(ctx, t.namespace, audience, &pods[0]))).To(Succeed(), "its pod's own token is good")
		Eventually(func() int { return t.call("victim", "/").status }, soon).Should(Equal(200))
	})

	It("of gateways and controllers is a certificate", func(ctx SpecContext) {
		offer := func(creds credentials.TransportCredentials) error {
			stream, err := schedulers(ctx, creds)[0].Offer(ctx)
			Expect(err).NotTo(HaveOccurred())
			_ = stream.Send(&controlwire.OfferRequest{Gateway: "127.0.0.1:1"}) // the refusal comes by Recv
			_, err = stream.Recv()
			return err
		}
		watch := func(creds credentials.TransportCredentials) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			stream, err := schedulers(ctx, creds)[0].Watch(ctx, &controlwire.WatchRequest{})
			Expect(err).NotTo(HaveOccurred())
			_, err = stream.Recv()
			return err
		}
		Expect(status.Code(offer(asAgent(ctx)))).To(Equal(codes.Unauthenticated))
		Expect(status.Code(watch(asAgent(ctx)))).To(Equal(codes.Unauthenticated))
		Expect(status.Code(offer(asPart(ctx, "controller")))).To(Equal(codes.PermissionDenied))
		Expect(status.Code(watch(asPart(ctx, "gateway")))).To(Equal(codes.PermissionDenied))
		Expect(status.Code(offer(asPart(ctx, "etcd")))).To(Equal(codes.PermissionDenied))
		Expect(status.Code(watch(asPart(ctx, "controller")))).To(BeElementOf(codes.OK, codes.DeadlineExceeded), "who may")
	})

	It("of an instance is out of its function's reach, which has no token unless it asks for one", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.kubectl("create", "serviceaccount", "robot")
		t.warm(httpd("plain"), httpd("robot", func(s *v1alpha1.FunctionSpec) { s.Template.ServiceAccountName = "robot" }))
		read := func(name, path string) answer { return t.call(name, "/read?path="+url.QueryEscape(path)) }

		const agents, account = "/var/run/secrets/windlass.dev", "/var/run/secrets/kubernetes.io/serviceaccount/token"
		for _, path := range []string{
			agents + "/token", agents + "/..data/token", "/run/secrets/windlass.dev/token",
			"/proc/1/root" + agents + "/token", "/proc/self/root" + agents + "/token", account,
		} {
			Expect(read("plain", path).status).To(Equal(403), path)
		}
		mounts := read("plain", "/proc/self/mountinfo")
		Expect(mounts.status).To(Equal(200))
		Expect(mounts.body).NotTo(ContainSubstring("secret"), "nothing of the kind is mounted")
		for pid := 1; pid < 60; pid++ {
			a := read("plain", fmt.Sprintf("/proc/%d/cmdline", pid))
			Expect(a.body).NotTo(ContainSubstring("podagent"), "the agent is no process of the function's container")
		}
		for _, name := range []string{"plain", "robot"} {
			environment := strings.ToLower(t.call(name, "/env").body)
			Expect(environment).NotTo(SatisfyAny(ContainSubstring("token"), ContainSubstring("begin certificate")))
			Expect(read(name, agents+"/token").status).To(Equal(403))
		}

		By("giving the account's token to the function that asks for it, which is none of an agent")
		robot := read("robot", account)
		Expect(robot.status).To(Equal(200), robot.String())
		pod := t.living("robot")[0]
		err := pull(ctx, schedulers(ctx, asAgent(ctx)), pod.Labels[wellknown.LabelRevisionUID], pod.Labels[wellknown.LabelCID], strings.TrimSpace(robot.body))
		Expect(status.Code(err)).To(Equal(codes.Unauthenticated))
	})
})

// mixed is the first token with the signature of the second.
func mixed(first, second string) string {
	return first[:strings.LastIndex(first, ".")] + second[strings.LastIndex(second, "."):]
}
