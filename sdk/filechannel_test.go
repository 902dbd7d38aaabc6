package sdk_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

func TestFileChannelExample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, box := filepath.Join(dir, "filechannel"), filepath.Join(dir, "box")
	if out, err := exec.Command("go", "build", "-o", program, "./examples/filechannel").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := os.Mkdir(box, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(box, "in"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, box)
	cmd.Env = os.Environ()
	p := startCommand(t, cmd, "file_channel")
	p.start()
	in, err := os.OpenFile(filepath.Join(box, "in"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if _, err := in.WriteString("hello there\n"); err != nil {
		t.Fatal(err)
	}
	p.waitFor("the line was received", func() bool { return len(p.bus.published()) == 1 })
	var m contract.UserMessage
	if got := p.bus.published()[0]; got.GetTopic() != contract.TopicUserMessage ||
		json.Unmarshal(got.GetPayload(), &m) != nil || m.Text != "hello there" {
		t.Errorf("received %v", got)
	}
	stream, err := extensionv1.NewEventsClient(p.conn).Deliver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&extensionv1.DeliverFrame{Deliveries: []*busv1.Delivery{{Token: "t", Event: &busv1.Event{
		Id: "e1", Topic: contract.TopicChannelSend + "file_channel",
		Payload: []byte(`{"text":"good day","conversation":"file"}`),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if o := p.outcome(stream); o.GetKind() != busv1.Outcome_KIND_ACK ||
		o.GetEffects()[0].GetReceipt().GetProviderId() != "e1" {
		t.Errorf("outcome %v", o)
	}
	if out, err := os.ReadFile(filepath.Join(box, "out")); err != nil || string(out) != "good day\n" {
		t.Errorf("out: %q, %v", out, err)
	}
}
