package host_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/host"
)

// methods are all of some services, by their full names.
func methods(services ...*grpc.ServiceDesc) (all []string) {
	for _, d := range services {
		for _, m := range d.Methods {
			all = append(all, "/"+d.ServiceName+"/"+m.MethodName)
		}
		for _, m := range d.Streams {
			all = append(all, "/"+d.ServiceName+"/"+m.StreamName)
		}
	}
	return all
}

// ask calls a method with an empty request and returns what became of it.
func ask(ctx context.Context, c *grpc.ClientConn, method string) error {
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err == nil {
		err = errors.Join(stream.SendMsg(&emptypb.Empty{}), stream.CloseSend())
	}
	if err == nil {
		err = stream.RecvMsg(&emptypb.Empty{})
	}
	return err
}

// Each service of the owner's side is a grant of the manifest: an extension that may
// read changes nothing, and one without a grant sees nothing.
func TestGrantsOfTheOwnersSide(t *testing.T) {
	w := newWorld(t)
	read, manage := methods(&adminv1.Read_ServiceDesc), methods(&adminv1.Manage_ServiceDesc, &adminv1.Installation_ServiceDesc)
	for _, tt := range []struct {
		grant   string
		method  []string
		lacking string // empty: granted
	}{
		{"", read, "read"}, {"", manage, "manage"},
		{bus.AdminRead, read, ""}, {bus.AdminRead, manage, "manage"},
		{bus.AdminManage, read, ""}, {bus.AdminManage, manage, ""},
	} {
		x := w.admit(bus.Actor{ID: "x", Admin: tt.grant})
		for _, method := range tt.method {
			err := ask(t.Context(), x.conn, method)
			switch granted := status.Code(err) == codes.Unimplemented; {
			case tt.lacking == "" && !granted:
				t.Errorf("granted %q, %s: %v", tt.grant, method, err)
			case tt.lacking != "" && (status.Code(err) != codes.PermissionDenied ||
				!strings.Contains(err.Error(), `the manifest of "x" lacks "permissions: {admin: `+tt.lacking+`}"`)):
				t.Errorf("granted %q, %s: %v", tt.grant, method, err)
			}
		}
	}
}

const ownerToken = "secret"

func (w *world) owner(token string) *grpc.ClientConn {
	w.T.Helper()
	return w.dial(filepath.Join(w.dir, "o"), token)
}

// The owner's token is good on the owner's socket only, no other token is good
// there, and with it the owner reaches what is the owner's and nothing else.
func TestTheOwnersSocket(t *testing.T) {
	w := newWorld(t)
	w.listen(filepath.Join(w.dir, "o"), w.host.ServeOwner)
	a := &bus.Actor{ID: "x", Generation: 1, Builtin: true, Admin: bus.AdminManage}
	extension := w.host.Admit(a)
	owners := methods(&adminv1.Read_ServiceDesc, &adminv1.Manage_ServiceDesc)
	others := methods(
		&kernelv1.Bus_ServiceDesc,
		&kernelv1.KV_ServiceDesc,
		&kernelv1.Sessions_ServiceDesc,
		&kernelv1.Tools_ServiceDesc,
	)
	for _, tt := range []struct {
		name    string
		conn    *grpc.ClientConn
		methods []string
		want    codes.Code
		text    string
	}{
		{"the owner", w.owner(ownerToken), owners, codes.Unimplemented, ""},
		{"the owner", w.owner(ownerToken), others, codes.PermissionDenied, "is for extensions"},
		{"no token", w.owner(""), owners, codes.Unauthenticated, "the request lacks the token"},
		{"another token", w.owner(ownerToken + "0"), owners, codes.Unauthenticated, "the request lacks the token"},
		{"part of it", w.owner(ownerToken[:3]), owners, codes.Unauthenticated, "the request lacks the token"},
		{"an extension's", w.owner(extension), owners, codes.Unauthenticated, "the request lacks the token"},
		{"the owner's on the other socket", w.dial(w.socket, ownerToken), append(owners, others...), codes.Unauthenticated, "no valid token"},
	} {
		for _, method := range tt.methods {
			if err := ask(t.Context(), tt.conn, method); status.Code(err) != tt.want || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s, %s: %v", tt.name, method, err)
			}
		}
	}
}

// A process of another user is sent away before it is heard, also with the token.
func TestAnotherUserOnTheOwnersSocket(t *testing.T) {
	w := newWorld(t, func(h *host.Host) {
		h.CheckUser(func(net.Conn) (int, error) { return 0, errors.New("another user") })
	})
	w.listen(filepath.Join(w.dir, "o"), w.host.ServeOwner)
	err := ask(t.Context(), w.owner(ownerToken), adminv1.Read_Status_FullMethodName)
	if status.Code(err) != codes.Unavailable {
		t.Errorf("another user is answered: %v", contract.FromStatus(err))
	}
}
