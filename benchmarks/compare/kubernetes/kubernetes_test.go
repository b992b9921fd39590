package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

const dir = "../../../packaging/kubernetes"

// manifests are the objects of a file, each decoded with all of its fields known. read requires one
// of each kind but those that it names.
type manifests struct {
	config     core.ConfigMap
	deployment apps.Deployment
	service    core.Service
	disruption policy.PodDisruptionBudget
	scaler     autoscaling.HorizontalPodAutoscaler
	network    networking.NetworkPolicy
}

func read(t *testing.T, name string, without ...string) *manifests {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	m := &manifests{}
	kinds := map[string]any{
		"ConfigMap": &m.config, "Deployment": &m.deployment, "Service": &m.service,
		"PodDisruptionBudget": &m.disruption, "HorizontalPodAutoscaler": &m.scaler,
		"NetworkPolicy": &m.network,
	}
	for _, kind := range without {
		delete(kinds, kind)
	}
	kind := regexp.MustCompile(`(?m)^kind: (.*)$`)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		found := kind.FindStringSubmatch(document)
		if found == nil || kinds[found[1]] == nil {
			t.Fatalf("%s: a document of no kind, or a second one:\n%s", name, document)
		}
		if err := yaml.UnmarshalStrict([]byte(document), kinds[found[1]]); err != nil {
			t.Errorf("%s, %s: %v", name, found[1], err)
		}
		delete(kinds, found[1])
	}
	for kind := range kinds {
		t.Errorf("%s has no %s", name, kind)
	}
	return m
}

// The kustomization has all files.
func TestKustomization(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var k struct {
		Resources []string
		Images    []struct{ Name, NewName, NewTag string }
	}
	if err := yaml.UnmarshalStrict(text, &k); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) != len(k.Resources)+1 {
		t.Errorf("%v are in the kustomization, and %v are there, %v", k.Resources, files, err)
	}
	for _, name := range k.Resources {
		if image := read(t, name).deployment.Spec.Template.Spec.Containers[0].Image; len(k.Images) != 1 ||
			image != k.Images[0].Name {
			t.Errorf("%s: the image %q has no line in %v", name, image, k.Images)
		}
	}
}

// The names are what Envoy AI Gateway expects.
func TestAIGateway(t *testing.T) {
	const name = "envoy-ai-gateway-ratelimit"
	m := read(t, "ai-gateway/rls.yaml", "ConfigMap", "PodDisruptionBudget", "HorizontalPodAutoscaler")
	port := m.service.Spec.Ports[0]
	c := m.deployment.Spec.Template.Spec.Containers[0]
	if m.service.Name != name || m.service.Spec.Selector["app"] != name || port.Port != 8081 ||
		m.deployment.Spec.Template.Labels["app"] != name || port.TargetPort.StrVal != c.Ports[0].Name ||
		m.network.Spec.PodSelector.MatchLabels["app"] != name || c.Ports[0].ContainerPort != 8081 {
		t.Errorf("%+v", m)
	}
}

// The objects of a file belong together, and the flags are flags of the program.
func TestManifests(t *testing.T) {
	for _, name := range []string{"rls", "proxy"} {
		m := read(t, name+".yaml")
		app := "tb-" + name
		for what, got := range map[string]string{
			"config": m.config.Name, "deployment": m.deployment.Name, "service": m.service.Name,
			"disruption": m.disruption.Name, "scaler": m.scaler.Name, "network": m.network.Name,
			"labels": m.deployment.Spec.Template.Labels["app"], "target": m.scaler.Spec.ScaleTargetRef.Name,
			"selector":            m.deployment.Spec.Selector.MatchLabels["app"],
			"service selector":    m.service.Spec.Selector["app"],
			"disruption selector": m.disruption.Spec.Selector.MatchLabels["app"],
			"network selector":    m.network.Spec.PodSelector.MatchLabels["app"],
			"volume":              m.deployment.Spec.Template.Spec.Volumes[0].ConfigMap.Name,
		} {
			if got != app {
				t.Errorf("%s: the %s is %q, want %q", name, what, got, app)
			}
		}
		c := m.deployment.Spec.Template.Spec.Containers[0]
		var ports []string
		for _, p := range c.Ports {
			ports = append(ports, p.Name)
		}
		var used []intstr.IntOrString
		for _, p := range m.service.Spec.Ports {
			used = append(used, p.TargetPort)
		}
		for _, rule := range m.network.Spec.Ingress {
			for _, p := range rule.Ports {
				used = append(used, *p.Port)
			}
		}
		for _, p := range used {
			if !slices.Contains(ports, p.StrVal) {
				t.Errorf("%s: no port %v in %v", name, p, ports)
			}
		}
		if c.ReadinessProbe == nil || c.LivenessProbe == nil || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: a probe or the limit of memory is missing", name)
		}
		manual, err := os.ReadFile("../../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Command, " "); got != "/"+app {
			t.Errorf("%s: the command is %q, want /%s", name, got, app)
		}
		for _, arg := range c.Args {
			flag, value, _ := strings.Cut(arg, "=")
			if !strings.Contains(string(manual), "\n| `"+flag+"` |") {
				t.Errorf("docs/%s.md has no flag %s", name, flag)
			}
			mounted := c.VolumeMounts[0].MountPath
			if strings.HasPrefix(value, "/") && !strings.HasPrefix(value, mounted) {
				t.Errorf("%s: %s is not below %s", name, arg, mounted)
			}
		}
	}
}
