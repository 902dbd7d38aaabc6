package manifests_test

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/manifests"
)

func TestOnlyOutputsCanBeOwn(t *testing.T) {
	t.Parallel()
	const head = `api: 1
id: tasks
name: Tasks
version: 1.0.0
run: {command: ./tasks}
permissions:
  subscribe:
`
	m, err := manifests.Parse("tasks.yaml", []byte(head+"  - {topic: agent.output, own: true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !m.Permissions.Subscribe[0].Own {
		t.Error("it is not taken over")
	}
	_, err = manifests.Parse("tasks.yaml", []byte(head+"  - {topic: other.changed, own: true}\n"))
	if want := "tasks.yaml:8:33: permissions.subscribe[0].own: is for the topic agent.output only"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
