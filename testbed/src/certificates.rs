//! The certificates and keys of one instance of a control plane.

use std::fs;
use std::path::Path;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::node;

/// Who has a client certificate of the cluster's authority: the name of its files, the user and the group.
pub(crate) const CLIENTS: [(&str, &str, Option<&str>); 4] = [
    ("admin", "kubernetes-admin", Some("system:masters")),
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    // It may do everything, but has its own name, so that the audit log tells it from the administrator.
    ("kwok", "kwok", Some("system:masters")),
];

/// The same, of a node that runs Pods. The names are those that Kubernetes has roles for.
pub(crate) const NODE_CLIENTS: [(&str, &str, Option<&str>); 2] =
    [("kubelet", "system:node:node-0", Some("system:nodes")), ("kube-proxy", "system:kube-proxy", None)];

const API_SERVER: [&str; 7] = [
    "127.0.0.1",
    "10.96.0.1",
    node::MACHINE,
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
];

/// Makes the folder with all files. Instances share nothing, so that a component which reaches a port of another instance by mistake is
/// refused there.
pub(crate) fn write(folder: &Path, with_node: bool) -> Result<()> {
    fs::create_dir(folder)?;
    let cluster = authority(folder, "cluster-ca")?;
    sign(folder, &cluster, "kube-apiserver", ("kube-apiserver", None), &API_SERVER)?;
    for (file, user, group) in CLIENTS {
        sign(folder, &cluster, file, (user, group), &[])?;
    }
    if with_node {
        for (file, user, group) in NODE_CLIENTS {
            sign(folder, &cluster, file, (user, group), &[])?;
        }
        sign(folder, &cluster, "kubelet-server", ("kubelet", None), &[node::NODE_ADDRESS])?;
        // As which the API server asks kubelet for logs.
        let user = ("kube-apiserver-kubelet-client", Some("system:masters"));
        sign(folder, &cluster, "kubelet-client", user, &[])?;
    }
    // Its only client trusts no other etcd, so two instances cannot use one store by mistake, even if one gets the port that the other has
    // just chosen.
    let etcd = authority(folder, "etcd-ca")?;
    sign(folder, &etcd, "etcd", ("etcd", None), &["127.0.0.1"])?;
    sign(folder, &etcd, "etcd-client", ("kube-apiserver", None), &[])?;
    // Not the cluster's authority: whoever has a certificate of this one may act as any user.
    let front_proxy = authority(folder, "front-proxy-ca")?;
    sign(folder, &front_proxy, "front-proxy-client", ("front-proxy-client", None), &[])?;
    // What signs and verifies the tokens of service accounts. Kubernetes accepts ECDSA keys as well as RSA, and they take no time to create.
    let tokens = KeyPair::generate()?;
    fs::write(folder.join("service-account.key"), tokens.serialize_pem())?;
    // The API server does not find the public key in a PKCS#8 file of the private one.
    fs::write(folder.join("service-account.pub"), tokens.public_key_pem())?;
    Ok(())
}

/// Writes the certificate of a new authority. The key stays in memory: the controllers that would sign with it are not needed here.
fn authority(folder: &Path, name: &str) -> Result<Issuer<'static, KeyPair>> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    fs::write(folder.join(format!("{name}.crt")), params.self_signed(&key)?.pem())?;
    Ok(Issuer::new(params, key))
}

/// Writes the certificate and the key of a user, with a group or without, or of the server of these hosts.
fn sign(
    folder: &Path,
    authority: &Issuer<'_, KeyPair>,
    file: &str,
    (user, group): (&str, Option<&str>),
    hosts: &[&str],
) -> Result<()> {
    let mut params = CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let usage = if hosts.is_empty() {
        ExtendedKeyUsagePurpose::ClientAuth
    } else {
        ExtendedKeyUsagePurpose::ServerAuth
    };
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    fs::write(folder.join(format!("{file}.crt")), params.signed_by(&key, authority)?.pem())?;
    fs::write(folder.join(format!("{file}.key")), key.serialize_pem())?;
    Ok(())
}
