package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

type blobsService struct{ h *Host }

// mayUseFiles refuses an extension whose manifest does not ask for files.
func (s blobsService) mayUseFiles(ctx context.Context) (*bus.Actor, error) {
	a := actorOf(ctx)
	switch {
	case s.h.Blobs == nil:
		return nil, fmt.Errorf("%w: this kernel stores no files", contract.ErrUnavailable)
	case !a.Blobs:
		return nil, fmt.Errorf("%w: the manifest of %q lacks \"permissions: {blobs: true}\"", contract.ErrDenied, a.ID)
	}
	return a, nil
}

// received reads the bytes of the requests of a stream.
type received struct {
	stream grpc.ClientStreamingServer[kernelv1.PutBlobRequest, kernelv1.Blob]
	rest   []byte
}

// Read implements io.Reader.
func (r *received) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		m, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		r.rest = m.GetData()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Put implements kernelv1.BlobsServer.
func (s blobsService) Put(stream grpc.ClientStreamingServer[kernelv1.PutBlobRequest, kernelv1.Blob]) error {
	a, err := s.mayUseFiles(stream.Context())
	if err != nil {
		return err
	}
	b, err := s.h.Blobs.Put(a, &received{stream: stream})
	if errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrRefused) {
		err = fmt.Errorf("%w: %w", contract.ErrFull, err)
	}
	if err != nil {
		return err
	}
	return stream.SendAndClose(&kernelv1.Blob{Hash: b.Hash, Size: b.Size})
}

const blobChunk = 32<<10 - 16 // a message of it takes a buffer of 32 KiB

// Get implements kernelv1.BlobsServer.
func (s blobsService) Get(
	r *kernelv1.GetBlobRequest, stream grpc.ServerStreamingServer[kernelv1.GetBlobResponse],
) error {
	a, err := s.mayUseFiles(stream.Context())
	if err != nil {
		return err
	}
	var l *bus.Lease
	if r.GetLane() != "" {
		if l, err = s.h.lease(stream.Context(), r.GetLane()); err != nil {
			return err
		}
	}
	b, f, err := s.h.Blobs.Open(stream.Context(), a, l, r.GetHash())
	if err != nil {
		return err
	}
	defer f.Close()
	if err := stream.Send(&kernelv1.GetBlobResponse{Blob: &kernelv1.Blob{Hash: b.Hash, Size: b.Size}}); err != nil {
		return err
	}
	_, err = io.CopyBuffer(sent{stream}, struct{ io.Reader }{f}, make([]byte, blobChunk)) // not by the file's own WriteTo
	return err
}

// sent sends the bytes that are written to it.
type sent struct {
	stream grpc.ServerStreamingServer[kernelv1.GetBlobResponse]
}

// Write implements io.Writer.
func (s sent) Write(p []byte) (int, error) {
	return len(p), s.stream.Send(&kernelv1.GetBlobResponse{Data: p})
}
