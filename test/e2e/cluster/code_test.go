package cluster_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// handler is a function of a runtime.
func handler(name string, runtime v1alpha1.RuntimeName, code v1alpha1.Code) *v1alpha1.Function {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Name: name}}
	fn.Spec.Template.RuntimeRef.Name, fn.Spec.Template.Handler, fn.Spec.Template.Code = runtime, "main.handle", &code
	fn.Spec.Template.Resources.Requests = amount("10m", "32Mi")
	return fn
}

const (
	python = "def handle(event, context):\n    return {'greeting': 'hello ' + event['name'] + ' from python'}\n"
	nodejs = "exports.handle = async (event) => ({ greeting: `hello ${event.name} from nodejs` });\n"
)

// expectGreeting calls a handler until it has started, and no longer than that.
func (t *tenant) expectGreeting(name, language string) {
	GinkgoHelper()
	a := t.post(name, "/", `{"name": "Ada"}`)
	Expect(a.status).To(Equal(200), a.String()+"\n"+t.explain(name)())
	Expect(a.body).To(MatchJSON(`{"greeting": "hello Ada from `+language+`"}`), a.String())
}

var _ = Describe("Code", func() {
	It("runs inline, in Python and in JavaScript", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.deploy(
			handler("py", v1alpha1.RuntimePython313, v1alpha1.Code{Inline: python}),
			handler("js", v1alpha1.RuntimeNodeJS22, v1alpha1.Code{Inline: nodejs}))
		t.expectGreeting("py", "python")
		t.expectGreeting("js", "nodejs")
	})

	It("runs from a ConfigMap, with its modules and data", func(ctx SpecContext) {
		t := newTenant(ctx)
		Expect(world.api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "code"},
			Data: map[string]string{
				"main.py": "import os, words\n\ndef handle(event, context):\n" +
					"    tail = open(os.path.join(os.environ['LAMBDA_TASK_ROOT'], 'tail.txt')).read()\n" +
					"    return {'greeting': words.hello(event['name']) + tail}\n",
				"words.py": "def hello(name):\n    return 'hello ' + name\n",
				"tail.txt": " from python",
			},
		})).To(Succeed())
		t.deploy(handler("py", v1alpha1.RuntimePython313, v1alpha1.Code{ConfigMapRef: v1alpha1.LocalReference{Name: "code"}}))
		t.expectGreeting("py", "python")
	})

	It("has files, and variables of keys and of its pod", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.kubectl("create", "secret", "generic", "partner", "--from-literal=key=sesame")
		t.kubectl("create", "configmap", "settings", "--from-literal=level=3", "--from-literal=greeting=ahoy")
		const code = "import os\n\ndef handle(event, context):\n" +
			"    open('/scratch/file', 'w').write('written')\n" +
			"    read = lambda path: open(path).read()\n" +
			"    return {'key': os.environ['KEY'], 'level': os.environ['LEVEL'], 'none': os.environ.get('NONE'), 'pod': os.environ['POD'],\n" +
			"            'file': read('/etc/partner/key'), 'greeting': read('/etc/app/greeting.txt'), 'scratch': read('/scratch/file')}\n"
		fn := handler("py", v1alpha1.RuntimePython313, v1alpha1.Code{Inline: code})
		fn.Spec.Template.Env = []v1alpha1.EnvVar{
			{Name: "KEY", ValueFrom: &v1alpha1.EnvVarSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "partner", Key: "key"}}},
			{Name: "LEVEL", ValueFrom: &v1alpha1.EnvVarSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "settings", Key: "level"}}},
			{Name: "NONE", ValueFrom: &v1alpha1.EnvVarSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "nobody", Key: "a", Optional: true}}},
			{Name: "POD", ValueFrom: &v1alpha1.EnvVarSource{FieldRef: &v1alpha1.FieldReference{FieldPath: v1alpha1.FieldPathName}}},
		}
		fn.Spec.Template.Mounts = []v1alpha1.Mount{
			{Name: "partner", MountPath: "/etc/partner", Secret: &v1alpha1.SecretMount{SecretName: "partner"}},
			{Name: "greeting", MountPath: "/etc/app/greeting.txt", SubPath: "greeting", ConfigMap: &v1alpha1.ConfigMapMount{Name: "settings"}},
			{Name: "scratch", MountPath: "/scratch", EmptyDir: &v1alpha1.EmptyDirMount{}},
		}
		t.deploy(fn)
		a := t.post("py", "/", "{}")
		Expect(a.status).To(Equal(200), a.String()+"\n"+t.explain("py")())
		pods := namesOf(t.pods("py"))
		Expect(pods).To(HaveLen(1))
		Expect(a.body).To(MatchJSON(`{"key": "sesame", "level": "3", "none": null, "pod": "` + pods[0] + `", "file": "sesame", "greeting": "ahoy", "scratch": "written"}`))
	})

	It("runs in a Runtime of one's own", func(ctx SpecContext) {
		t := newTenant(ctx)
		own := v1alpha1.RuntimeName("snake-" + t.namespace)
		runtime := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: string(own)}}
		runtime.Spec = v1alpha1.ClusterRuntimeSpec{Image: image("runtime-python3.13"), FileExtension: "py"}

		By("naming the Runtime that is missing")
		t.apply(handler("py", own, v1alpha1.Code{Inline: python}))
		Eventually(t.ready("py"), soon).Should(Equal("False "+v1alpha1.ReasonRuntimeNotFound), t.explain("py"))

		Expect(world.api.Create(ctx, runtime)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(world.api.Delete(ctx, runtime)).To(Succeed()) })
		t.waitReady("py")
		t.expectGreeting("py", "python")
	})

	It("is an image that knows nothing of Windlass, with arguments, variables and a port", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.deploy(httpd("plain", func(s *v1alpha1.FunctionSpec) {
			s.Template.Port = 8080
			s.Template.Env = []v1alpha1.EnvVar{{Name: "GREETING", Value: "ahoy"}}
		}))
		a := t.post("plain", "/any/path", "a body")
		Expect(a.status).To(Equal(200), a.String())
		Expect(a.body).To(MatchJSON(`{"hostname": "` + a.host() + `", "method": "POST", "path": "/any/path", "greeting": "ahoy", "body": "a body"}`))
		Expect(t.call("plain", "/env?name=PORT").body).To(Equal("8080\n"))
		Expect(namesOf(t.pods("plain"))).To(ContainElement(a.host()))

		By("passing on the status of the function's own answer")
		a = t.call("plain", "/env?name=NOT_SET")
		Expect(a.status).To(Equal(404))
		Expect(a.executed()).To(Equal("yes"))
	})
})

var _ = Describe("A1: edited code", func() {
	It("answers the next call once the schedulers know it", func(ctx SpecContext) {
		t := newTenant(ctx)
		_, try := t.command(ctx)
		dir := GinkgoT().TempDir()
		deploy := func(files map[string]string) {
			GinkgoHelper()
			for name, text := range files {
				Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
			}
			out, err := try("deploy", "--name", "edited", "--runtime", "python3.13", "--handler", "main.handle", "--code", dir, "--wait")
			Expect(err).NotTo(HaveOccurred(), out)
		}
		expect := func(version string) {
			GinkgoHelper()
			// A scheduler hears of the change from the API server, after the command has ended.
			Eventually(func() string { return t.post("edited", "/", `{}`).body }, soon, "100ms").Should(Equal(`"` + version + `"`))
			Consistently(func() string { return t.post("edited", "/", `{}`).body }, "2s", "100ms").Should(Equal(`"` + version + `"`))
		}
		answering := func(expression string) string { return "def handle(event, context):\n    return " + expression + "\n" }

		By("sending one file inline")
		deploy(map[string]string{"main.py": answering("'first'")})
		expect("first")
		deploy(map[string]string{"main.py": answering("'second'")})
		expect("second")

		By("sending two files as a ConfigMap")
		deploy(map[string]string{"main.py": "import words\n" + answering("words.VERSION"), "words.py": "VERSION = 'third'\n"})
		expect("third")
		deploy(map[string]string{"words.py": "VERSION = 'fourth'\n"})
		expect("fourth")
	})
})
