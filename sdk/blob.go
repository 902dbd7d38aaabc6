package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Blob is a file that the kernel stores.
type Blob struct {
	Hash string // SHA-256 of its bytes, in hexadecimal
	Size int64  // bytes
}

// files is a connection for files alone, so that a slow reader of one delays no event. It
// is opened by its first use.
type files struct {
	mu   sync.Mutex
	conn *grpc.ClientConn
}

func (k *Kernel) blobs(ctx context.Context) (context.Context, kernelv1.BlobsClient, error) {
	k.files.mu.Lock()
	defer k.files.mu.Unlock()
	if k.ctx.Err() != nil {
		return ctx, nil, fmt.Errorf("open a connection for files: %w", contract.ErrGone)
	}
	if k.files.conn == nil {
		conn, err := newConn(k.init.GetKernelAddress())
		if err != nil {
			return ctx, nil, fmt.Errorf("open a connection for files: %w", err)
		}
		k.files.conn = conn
		context.AfterFunc(k.ctx, func() { _ = conn.Close() })
	}
	return metadata.AppendToOutgoingContext(ctx, contract.TokenHeader, k.init.GetKernelToken()),
		kernelv1.NewBlobsClient(k.files.conn), nil
}

const blobChunk = 32<<10 - 16 // a message of it takes a buffer of 32 KiB

// PutBlob stores a file and returns when it is on disk. It is kept for an hour: within
// that time, publish an event or write a value that names it. The manifest needs
// permissions: {blobs: true}. A file above the kernel's limit is refused with
// contract.ErrTooLarge; an error of from is returned as it is.
func (k *Kernel) PutBlob(ctx context.Context, from io.Reader) (Blob, error) {
	ctx, client, err := k.blobs(ctx)
	if err != nil {
		return Blob{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a file that was not read to its end is not stored
	stream, err := client.Put(ctx)
	if err != nil {
		return Blob{}, fmt.Errorf("store a file: %w", contract.FromStatus(err))
	}
	for chunk := make([]byte, blobChunk); ; {
		n, err := fill(chunk, from)
		if n > 0 && stream.Send(&kernelv1.PutBlobRequest{Data: chunk[:n]}) != nil || errors.Is(err, io.EOF) {
			break // CloseAndRecv has the reason
		}
		if err != nil {
			return Blob{}, err
		}
	}
	b, err := stream.CloseAndRecv()
	if err != nil {
		return Blob{}, fmt.Errorf("store a file: %w", contract.FromStatus(err))
	}
	return Blob{Hash: b.GetHash(), Size: b.GetSize()}, nil
}

// fill is io.ReadFull, but keeps io.ErrUnexpectedEOF apart from the end of the file: it is
// the error of an HTTP response that broke off.
func fill(buffer []byte, from io.Reader) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = from.Read(buffer[n:])
		n += more
	}
	return n, err
}

// getBlob asks for a file; the first message is read. It ends with cancel.
func (k *Kernel) getBlob(
	ctx context.Context, name string,
) (b Blob, stream grpc.ServerStreamingClient[kernelv1.GetBlobResponse], cancel context.CancelFunc, err error) {
	lane := LaneOf(ctx)
	ctx, client, err := k.blobs(ctx)
	if err != nil {
		return b, nil, nil, err
	}
	ctx, cancel = context.WithCancel(ctx)
	stream, err = client.Get(ctx, &kernelv1.GetBlobRequest{Hash: name, Lane: lane})
	var first *kernelv1.GetBlobResponse
	if err == nil {
		first, err = stream.Recv()
	}
	if err != nil {
		cancel()
		return b, nil, nil, contract.FromStatus(err)
	}
	return Blob{Hash: first.GetBlob().GetHash(), Size: first.GetBlob().GetSize()}, stream, cancel, nil
}

// FindBlob returns a file that GetBlob would read, without its bytes.
func (k *Kernel) FindBlob(ctx context.Context, name string) (Blob, error) {
	b, _, cancel, err := k.getBlob(ctx, name)
	if err != nil {
		return b, fmt.Errorf("find file %s: %w", name, err)
	}
	cancel()
	return b, nil
}

// GetBlob writes a stored file to to, and checks its bytes. The file is one that this
// extension stored a short while ago, that its values keep, or that came with the event
// or the session of the handler or tool call of ctx. In a session, the first
// contract.ReferenceDigits of the hash name it too. Otherwise the error is
// contract.ErrNotFound.
func (k *Kernel) GetBlob(ctx context.Context, name string, to io.Writer) (Blob, error) {
	b, stream, cancel, err := k.getBlob(ctx, name)
	if err != nil {
		return b, fmt.Errorf("read file %s: %w", name, err)
	}
	defer cancel()
	sum := sha256.New()
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return b, fmt.Errorf("read file %s: %w", name, contract.FromStatus(err))
		}
		sum.Write(r.GetData())
		if _, err := to.Write(r.GetData()); err != nil {
			return b, err
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != b.Hash {
		return b, fmt.Errorf("read file %s: %w: its bytes on disk are damaged; a backup may have them", name,
			contract.ErrNotFound)
	}
	return b, nil
}
